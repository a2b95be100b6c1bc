import type { LoraArchitecture } from './lora';

/** What a tensor of a LoRA file is for. */
export type LoraRole = 'down' | 'up' | 'alpha' | 'diff' | 'biasDelta' | 'upBias' | 'tableDelta';

/** A key of a LoRA file, understood. */
export interface LoraKey {
  /** Name as in the model's own file: a module, or for table deltas the table's tensor. */
  readonly target: string;
  readonly role: LoraRole;
}

/** PEFT puts the name of an adapter, of any spelling, between the matrix and its parameter. */
const endings: readonly (readonly [ending: RegExp, role: LoraRole])[] = [
  [/\.(lora_A|lora_down|lora\.down)(\.[^.]+)?\.weight$/, 'down'],
  [/\.(lora_B|lora_up|lora\.up)(\.[^.]+)?\.weight$/, 'up'],
  [/\.(lora_B|lora_up|lora\.up)(\.[^.]+)?\.bias$/, 'upBias'],
  [/\.alpha$/, 'alpha'],
  [/\.diff_b$/, 'biasDelta'],
  [/\.diff_m$/, 'tableDelta'],
  [/\.diff$/, 'diff'],
];

/** The end of a key that only a LoRA has, whatever its model. */
export const loraEnding = new RegExp(endings.map(([ending]) => ending.source).join('|'));

/** Some files have several of them. */
const prefixes =
  /^(base_model\.model\.|(model\.)?diffusion_model\.|transformer\.|(lora_unet|lora_transformer|lycoris)[._]+)+/;

/**
 * A reader of LoRA keys for a model: understands every layout in one table of the model's own names.
 * In the kohya layout every dot of a module name is an underscore, though some tools keep the dots behind the prefix.
 * Underscores are ambiguous, so such names are looked up, never split.
 *
 * @param architecture what a LoRA may change
 * @returns a function that gives null for a key it does not know
 */
export function loraKeyReader({
  shapes,
  originalName,
}: Pick<LoraArchitecture, 'shapes' | 'originalName'>): (key: string) => LoraKey | null {
  const targets = new Map<string, string>();
  const flat = (name: string) => name.replaceAll('.', '_');
  for (const tensor of shapes.keys()) {
    if (tensor.endsWith('scale_shift_table')) {
      // Written as blocks.0.diff_m or blocks.0.modulation.diff_m; the head's as head.…
      const owner = tensor.slice(0, -'.scale_shift_table'.length) || 'head';
      for (const name of [tensor, owner, `${owner}.modulation`]) targets.set(flat(name), tensor);
      continue;
    }
    const module = tensor.replace(/\.(weight|bias)$/, '');
    for (const name of [module, originalName(module)]) targets.set(flat(name), module);
  }

  return (key) => {
    const name = key.replace(prefixes, '');
    for (const [ending, role] of endings) {
      const at = name.search(ending);
      if (at < 0) continue;
      const target = targets.get(flat(name.slice(0, at)));
      if (target === undefined) return null;
      // A modulation table is a tensor, not a module: only a delta fits it, and only it a diff_m.
      if (!target.endsWith('scale_shift_table'))
        return role === 'tableDelta' ? null : { target, role };
      return role === 'diff' || role === 'tableDelta' ? { target, role: 'tableDelta' } : null;
    }
    return null;
  };
}
