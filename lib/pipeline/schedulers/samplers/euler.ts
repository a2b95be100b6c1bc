import { eulerStep, levelsOf, type Sampler, scheduleOf } from '../scheduler';

/**
 * Euler steps of the flow's ODE, x ← x + (σ_{i+1} − σ_i)·v: `FlowMatchEulerDiscreteScheduler` of
 * diffusers; Lipman et al., "Flow Matching for Generative Modeling", arXiv 2210.02747. Deterministic.
 */
export const euler: Sampler = {
  timesteps: 'optional',
  schedule(options) {
    const levels = levelsOf(options);
    return scheduleOf(levels, (i) => ({ correct: null, predict: eulerStep(levels, i) }));
  },
};
