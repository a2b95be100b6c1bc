export {
  type ClipDecoder,
  createVaeDecoder,
  type FrameDecoder,
  type LatentFrameSize,
  VaeDecoder,
  type VaeDecoderOptions,
} from './decoder';
export { encodeFirstFrame, type FirstFrameOptions, type PlanarImage } from './encoder';
export { tiledDecoderMemory, type VaeMemory, vaeDecoderMemory, vaeEncoderMemory } from './memory';
export { planTiles } from './plan-tiles';
export {
  createTiledVaeDecoder,
  TiledVaeDecoder,
  type TiledVaeDecoderOptions,
  tiledClipBytes,
} from './tiled-decoder';
export { exactOverlap, type Tiling, tileSize } from './tiles';
