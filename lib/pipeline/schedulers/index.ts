export { createScheduler } from './samplers';
export type { ScheduleOptions, Scheduler, StepCoefficients } from './scheduler';
export { Solver, type SolverState, solverSizes, stepGraph, stepSizes } from './solver';
