/** Changes `head.bias` of a checker in timm's layout, in place; its first number belongs to "NSFW". */
export function addToBias(file: Uint8Array<ArrayBuffer>, bias: number): void {
  const view = new DataView(file.buffer);
  const headerBytes = Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + headerBytes)));
  const at = 8 + headerBytes + header['head.bias'].data_offsets[0];
  view.setFloat32(at, view.getFloat32(at, true) + bias, true);
}
