export { type Backends, SafetyCheck, sampledFrames } from './check';
export { checkCheckerFiles, openSafetyChecker, type SafetyChecker } from './checker';
export { openQuickChecker } from './quick';
