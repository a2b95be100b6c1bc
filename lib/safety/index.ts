export {
  type Backends,
  SafetyCheck,
  type SafetyCheckHooks,
  sampledFrames,
  uncheckedSafety,
  videoScore,
} from './check';
export {
  checkCheckerFiles,
  checkerFiles,
  openSafetyChecker,
  type SafetyChecker,
} from './checker';
export type { ByteImage, RgbaImage, Squares } from './preprocess';
