export {
  type Backends,
  SafetyCheck,
  type SafetyCheckHooks,
  sampledFrames,
  videoScore,
} from './check';
export {
  checkCheckerFiles,
  checkerFiles,
  openSafetyChecker,
  type SafetyChecker,
} from './checker';
export type { RgbaImage, Squares } from './preprocess';
export { openQuickChecker } from './quick';
