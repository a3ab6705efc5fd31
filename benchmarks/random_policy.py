"""What a policy that does anything at random gets in ProcGen: the figure that an agent must beat.

python benchmarks/random_policy.py starpilot bigfish
"""

import argparse

import numpy as np

from srwm.rl.procgen import NUM_ACTIONS, Pool, PoolOptions

EPISODES = 2000
"""Episodes of each game: the first of as many environments, on the paper's training levels."""


def mean_return(game: str, seed: int) -> tuple[float, float]:
    """The mean return of random actions, and its standard error."""
    random = np.random.default_rng(seed)
    returns, is_over = np.zeros(EPISODES), np.zeros(EPISODES, dtype=bool)
    with Pool(PoolOptions(games=(game,), num_envs=EPISODES, seed=seed)) as pool:
        while not is_over.all():
            pool.act(random.integers(NUM_ACTIONS, size=EPISODES))
            _, rewards, first = pool.observe()
            returns += np.where(is_over, 0.0, rewards)
            is_over |= first.astype(bool)
    return float(returns.mean()), float(returns.std(ddof=1) / EPISODES**0.5)


def main() -> None:
    """Print a line for each game."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="+", metavar="GAME")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for game in args.games:
        mean, error = mean_return(game, args.seed)
        print(f"{game}: mean return {mean:.2f} ± {1.96 * error:.2f} (95%, {EPISODES} episodes)")


if __name__ == "__main__":
    main()
