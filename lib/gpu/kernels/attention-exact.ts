import type { AttentionShape, AttentionVariant } from './attention';
import {
  type Area,
  eachUnit,
  type Geometry,
  geometryOf,
  lanes,
  lines,
  load8,
  place,
  read,
  rowsBinding,
  slice,
} from './attention-tile';
import type { Logits } from './attention-wgsl';
import type { Storage } from './kernel';

/** Logits in f32. */
export function exactLogits(variant: AttentionVariant, shape: AttentionShape): Logits {
  const geometry = geometryOf(variant, shape.headSize);
  const { left, keySlice, valueSlice } = geometry;
  const right = Math.max(keySlice, valueSlice);
  const half = (storage: Storage) => variant.shared === 'f16' && storage === 'f16';
  const weights: Area = { name: 'left', element: 'vec4<f32>', count: left };
  const rows: Area = half(shape.q)
    ? { name: 'leftHalf', element: 'vec4<f16>', count: left }
    : weights;
  const values: Area = half(shape.kv)
    ? { name: 'rightHalf', element: 'vec4<f16>', count: right }
    : { name: 'right', element: 'vec4<f32>', count: right };
  const areas = [...new Set([weights, rows, values])];
  const halves = areas.some(({ element }) => element === 'vec4<f16>');
  const { q, kv, out, headSize } = shape;
  return {
    name: `attention ${q},${kv}→${out} ${headSize} ${variant.queries}×${variant.keys}${halves ? ' in f16' : ''}`,
    mode: 'exact',
    bindings: [rowsBinding('q', q), rowsBinding('k', kv)],
    uniforms: ['q', 'k'].flatMap((name) => [`${name}Head`, `${name}Row`, `${name}First`]),
    needs: halves ? ['shader-f16'] : [],
    directives: halves ? 'enable f16;' : '',
    areas,
    weights,
    values,
    text: productText(variant, shape, geometry, rows, values),
    factor: () => 'uniforms.scale',
  };
}

/** Products of the rows with the keys of the tile, in slices of the channels; k ascends. */
function productText(
  { queries, keys: tile }: AttentionVariant,
  shape: AttentionShape,
  { rows, keys, threads }: Geometry,
  left: Area,
  right: Area,
): string {
  const { headSize } = shape;
  const fill = (
    name: string,
    storage: Storage,
    area: Area,
    count: number,
    row: string,
    slot: string,
  ) => {
    const index = `${place(name, row)} + channel`;
    const load = load8(name, storage, index, area, ['slot', `slot + ${count}u`]);
    const zero = `${area.element}()`;
    return eachUnit(
      count * 2,
      threads,
      `
        let row = unit / 2u;
        let half = unit % 2u;
        let slot = half * ${2 * count}u + ${slot};
        let channel = c * 2u + half;
        ${
          headSize % slice === 0
            ? load
            : `if (channel < ${headSize / 8}u) {
        ${load}
        } else {
          ${area.name}[slot] = ${zero};
          ${area.name}[slot + ${count}u] = ${zero};
        }`
        }`,
    );
  };
  const product = (i: number, j: number) =>
    ['x', 'y', 'z', 'w'].reduce((sum, e) => `fma(a.${e}, b${j}.${e}, ${sum})`, `s${i}_${j}`);
  return `
    for (var c = 0u; c < ${Math.ceil(headSize / slice)}u; c++) {
      workgroupBarrier();
${fill('q', shape.q, left, queries, 'min(firstQuery + row, uniforms.rows - 1u)', 'row')}
${fill('k', shape.kv, right, tile, 'min(firstKey + row, uniforms.keys - 1u)', `row / ${keys}u + row % ${keys}u * ${lanes}u`)}
      workgroupBarrier();
${lines(
  4,
  (d) => `      {
${lines(keys, (j) => `        let b${j} = ${read(right, `${d * tile + j * lanes}u + lane`)};`)}
${lines(
  rows,
  (i) => `        {
          let a = ${read(left, `${d * queries + i}u + part * ${rows}u`)};
${lines(keys, (j) => `          s${i}_${j} = ${product(i, j)};`)}
        }`,
)}
      }`,
)}
    }`;
}
