import {
  type Area,
  type Fill,
  fetch,
  fillNow,
  type Geometry,
  geometryOf,
  lanes,
  place,
  read,
  rowsBinding,
  slice,
  storeFetched,
} from './attention-tile';
import { type Logits, valuesFill } from './attention-wgsl';
import type { AttentionShape, AttentionVariant } from './choice';
import type { Storage } from './kernel';
import { lines } from './text';

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
    text: productText(variant, shape, geometry, [rows, values]),
    ...(variant.ahead !== false && {
      ahead: (firstKey) => slicesOf(variant, shape, geometry, [rows, values])('0u', firstKey),
    }),
    factor: () => 'uniforms.scale',
  };
}

/** Slices of the channels of Q and K. */
function slicesOf(
  { queries, keys: tile }: AttentionVariant,
  { headSize, q, kv }: AttentionShape,
  { keys }: Geometry,
  [left, right]: readonly [Area, Area],
) {
  const units = headSize / 8;
  const whole = headSize % slice === 0;
  const fill =
    (name: string, storage: Storage, area: Area, count: number, row: string, slot: string) =>
    (c: string): Fill => ({
      name,
      storage,
      area,
      count: count * 2,
      setup: `
        let row = unit / 2u;
        let half = unit % 2u;
        let slot = half * ${2 * count}u + ${slot};
        let channel = ${c} * 2u + half;`,
      index: `${place(name, row)} + ${whole ? 'channel' : `min(channel, ${units - 1}u)`}`,
      slots: ['slot', `slot + ${count}u`],
      ...(!whole && { inside: `channel < ${units}u` }),
    });
  return (c: string, firstKey: string): readonly [Fill, Fill] => [
    fill('q', q, left, queries, 'min(firstQuery + row, uniforms.rows - 1u)', 'row')(c),
    fill(
      'k',
      kv,
      right,
      tile,
      `min(${firstKey} + row, uniforms.keys - 1u)`,
      `row / ${keys}u + row % ${keys}u * ${lanes}u`,
    )(c),
  ];
}

/** Products of the rows with the keys of the tile, in slices of the channels; k ascends. */
function productText(
  variant: AttentionVariant,
  shape: AttentionShape,
  geometry: Geometry,
  areas: readonly [Area, Area],
): string {
  const { queries, keys: tile } = variant;
  const { rows, keys, threads } = geometry;
  const [left, right] = areas;
  const slices = Math.ceil(shape.headSize / slice);
  const of = slicesOf(variant, shape, geometry, areas);
  const ahead = `${storeFetched(of('c', 'firstKey'), threads)}
      if (c < ${slices - 1}u) {
${fetch(of('(c + 1u)', 'firstKey'), threads)}
      } else {
${fetch([valuesFill(shape, geometry, right, '0u')], threads)}
      }`;
  const product = (i: number, j: number) =>
    ['x', 'y', 'z', 'w'].reduce((sum, e) => `fma(a.${e}, b${j}.${e}, ${sum})`, `s${i}_${j}`);
  return `
    for (var c = 0u; c < ${slices}u; c++) {
      workgroupBarrier();
${variant.ahead === false ? fillNow(of('c', 'firstKey'), threads) : ahead}
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
