export {
  type ClipDecoder,
  createVaeDecoder,
  type FrameDecoder,
  type LatentFrameSize,
  VaeDecoder,
  type VaeDecoderOptions,
} from './decoder';
export { encodeFirstFrame, type FirstFrameOptions, type PlanarImage } from './encoder';
export { requireFinite } from './pixels';
export {
  type DecodeOption,
  decodeOptions,
  decodeWork,
  measureDecoder,
  measureEncoder,
} from './plan';
export {
  createTiledVaeDecoder,
  TiledVaeDecoder,
  type TiledVaeDecoderOptions,
  type TileProgress,
  tiledClipBytes,
} from './tiled-decoder';
export { exactOverlap, type Tiling, tileSize } from './tiles';
