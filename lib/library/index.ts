// What pages need; the library itself lives in its worker.
export { openLora } from './loras';
