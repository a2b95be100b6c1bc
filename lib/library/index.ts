// What pages need; the library itself runs in its worker.
export { loraSource, openLora } from './loras';
export { acceptTerms, readAcceptance } from './terms';
