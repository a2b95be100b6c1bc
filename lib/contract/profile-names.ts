/** The variants of every model: what a request chooses by name. */
export const profileNames = ['standard', 'ultra-fast'] as const;
export type ProfileName = (typeof profileNames)[number];

/**
 * How latents become frames: the VAE's own decoder, a narrower one of the same layers (experimental), or a small and
 * fast one that is a little less faithful. Each but the first is a part of the model, `light_decoder` or `tiny_decoder`.
 */
export const decoderKinds = ['full', 'light', 'tiny'] as const;
export type DecoderKind = (typeof decoderKinds)[number];

/** Whether a model's variants compute differently. Where they do not there is nothing to choose. */
export function profilesDiffer(profiles: Readonly<Record<ProfileName, unknown>>): boolean {
  // Parsing writes the fields of both in the order of the schema.
  return JSON.stringify(profiles.standard) !== JSON.stringify(profiles['ultra-fast']);
}
