export {
  type ClipDecoder,
  createVaeDecoder,
  decodeCost,
  decoderGraphs,
  type LatentFrameSize,
  type VaeDecoderOptions,
} from './decoder';
export { encodeClip, encodeFirstFrame, type PlanarImage } from './encoder';
export {
  createTiledVaeDecoder,
  type TiledVaeDecoderOptions,
  tiledClipBytes,
} from './tiled-decoder';
export { exactOverlap, tileSize } from './tiles';
export {
  decodeOptions,
  decodeWork,
  measureDecoder,
  measureEncoder,
  measureGraphs,
  type VaePlanOptions,
} from './vae-memory';
