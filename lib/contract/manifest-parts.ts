/** Precision of linear layers on the device: float32, or quantised in blocks of 32 with one scale. */
export const precisions = ['f32', 'int8', 'int4'] as const;
export type Precision = (typeof precisions)[number];

/**
 * A part of a model that is downloaded and stored separately: one of the manifest's `components`, or one that
 * is the same for every model. `configuration` has all small files: the config.json of each component and
 * the files of scheduler and tokenizer. The only part of a tool is `language_model` or one of `finisherParts`.
 */
export type ComponentId = string;

/** LoRAs of the model itself: for few steps, and instead of guidance. They may run at the same time. */
export const adapterParts = ['adapter', 'guidance_adapter'] as const;
export type AdapterPart = (typeof adapterParts)[number];

export function isAdapterPart(component: ComponentId): component is AdapterPart {
  return adapterParts.some((part) => part === component);
}

/** A manifest as far as it says which parts with weights of its own a model has. */
interface WithComponents {
  readonly components: readonly { readonly id: ComponentId; readonly faster: boolean }[];
}

/** The parts of a model, in the order in which they are shown and fetched. */
export function componentIdsOf({ components }: WithComponents): ComponentId[] {
  const own = components.map(({ id }) => id);
  return ['configuration', ...own, ...adapterParts, 'safety_checker'];
}

/** Parts that make videos faster: where one cannot be had, the others are fetched all the same. */
export function isFaster({ components }: WithComponents, component: ComponentId): boolean {
  const faster = components.some((one) => one.faster && one.id === component);
  return isAdapterPart(component) || faster;
}
