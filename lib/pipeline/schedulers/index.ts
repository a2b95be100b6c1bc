export { checkSamplers, createScheduler, samplers } from './samplers';
export type { Evaluation, Sampler, ScheduleOptions, Scheduler } from './scheduler';
export { Solver, type SolverState, solverSizes, stepGraph, stepSizes } from './solver';
