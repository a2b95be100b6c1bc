export {
  type ClipDecoder,
  createVaeDecoder,
  type FrameDecoder,
  type LatentFrameSize,
  VaeDecoder,
  type VaeDecoderOptions,
} from './decoder';
export { encodeFirstFrame, type PlanarImage } from './encoder';
export {
  decodeOptions,
  decodeWork,
  measureDecoder,
  measureEncoder,
} from './plan';
export {
  createTiledVaeDecoder,
  TiledVaeDecoder,
  type TiledVaeDecoderOptions,
  tiledClipBytes,
} from './tiled-decoder';
export { exactOverlap, tileSize } from './tiles';
