"""Reinforcement learning on ProcGen (paper, section 4.3): agents that modify themselves while they play."""
