export {
  createVaeDecoder,
  type FrameDecoder,
  type LatentFrameSize,
  VaeDecoder,
  type VaeDecoderOptions,
} from './decoder';
export { encodeFirstFrame, type FirstFrameOptions, type PlanarImage } from './encoder';
export { type VaeMemory, vaeDecoderMemory, vaeEncoderMemory } from './memory';
