// Random numbers as functions of a key: `srwm.data._strokes_random`, in whole numbers of 64 bits.

const GOLDEN = 0x9e3779b97f4a7c15n;
const SUM_MEAN = 2 * 65535;
const SUM_DEVIATION = 37837.22746;

const wrap = (value) => BigInt.asUintN(64, value);

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
function mix(x) {
  x = wrap((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
  x = wrap((x ^ (x >> 27n)) * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

export const firstKey = (seed) => mix(wrap(seed + GOLDEN));
export const childKey = (key, number) => mix(key ^ mix(wrap(BigInt(number) + GOLDEN)));

const words = (key, count) => Array.from({ length: count }, (_, i) => mix(wrap(key + GOLDEN * BigInt(i + 1))));

// Even draws from 0 to below 1.
export const uniform = (key, count) => words(key, count).map((word) => Number(word >> 11n) * 2 ** -53);

// Draws of mean 0 and deviation 1, each a sum of four even ones.
export const normal = (key, count) =>
  words(key, count).map((word) => {
    const total = [0n, 16n, 32n, 48n].reduce((sum, shift) => sum + Number((word >> shift) & 0xffffn), 0);
    return (total - SUM_MEAN) / SUM_DEVIATION;
  });

// The key of a step of a stream, and 32 random bits at each position: `srwm.data.random`.
export const streamKey = (seed, stream, step) => mix(wrap(BigInt(step) * GOLDEN + mix(wrap(mix(BigInt(seed)) + BigInt(stream)))));
export const randomBits = (key, count) => words(key, count).map((word) => Number(word >> 32n));
