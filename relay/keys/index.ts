export { type Control, readControl, removeControl, writeControl } from './control';
export { createKeys } from './keys';
export { firstOwner } from './owner';
