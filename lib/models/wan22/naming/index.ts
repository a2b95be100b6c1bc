export { type WeightComponent, weightComponents } from './expected';
export { locateComponent, openComponent, recognise } from './recognise';
