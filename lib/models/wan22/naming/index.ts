export { checkArchitecture, openComponent } from './architecture';
export { ComponentTensors, canonicalise } from './canonicalise';
export { componentNames, type WeightComponent, weightComponents } from './expected';
export { type FileKind, recognise } from './recognise';
