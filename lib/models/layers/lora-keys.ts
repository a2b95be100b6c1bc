import type { LoraArchitecture } from './lora';

/** What a tensor of a LoRA file is for. */
export type LoraRole = 'down' | 'up' | 'alpha' | 'diff' | 'biasDelta' | 'upBias' | 'tableDelta';

/** A key of a LoRA file, understood. */
export interface LoraKey {
  /** Name as in the model's own file: a module, or for table deltas the table's tensor. */
  readonly target: string;
  readonly role: LoraRole;
}

const endings: readonly (readonly [ending: string, role: LoraRole])[] = [
  ['.lora_A.weight', 'down'],
  ['.lora_down.weight', 'down'],
  ['.lora.down.weight', 'down'],
  ['.lora_B.weight', 'up'],
  ['.lora_up.weight', 'up'],
  ['.lora.up.weight', 'up'],
  ['.lora_B.bias', 'upBias'],
  ['.lora_up.bias', 'upBias'],
  ['.alpha', 'alpha'],
  ['.diff_b', 'biasDelta'],
  ['.diff_m', 'tableDelta'],
  ['.diff', 'diff'],
];

const prefixes = [
  'base_model.model.',
  'model.diffusion_model.',
  'diffusion_model.',
  'transformer.',
];
const prefixOf = (name: string) => prefixes.find((prefix) => name.startsWith(prefix));
/** In the kohya layout every dot of a module name is an underscore; some tools keep the dots behind the prefix. */
const flatPrefix = /^(lora_unet|lora_transformer|lycoris)[._]+/;
/** PEFT puts the name of an adapter, of any spelling, between the matrix and its parameter. */
const adapterName = /\.(lora_[AB]|lora_(?:down|up)|lora\.(?:down|up))\.[^.]+\.(weight|bias)$/;

/**
 * A reader of LoRA keys for a model: understands every layout in one table of the model's own names.
 * Underscores are ambiguous, so flat names are looked up, never split.
 *
 * @param architecture what a LoRA may change
 * @returns a function that gives null for a key it does not know
 */
export function loraKeyReader({
  shapes,
  originalName,
}: Pick<LoraArchitecture, 'shapes' | 'originalName'>): (key: string) => LoraKey | null {
  const targets = new Map<string, string>();
  const flatTargets = new Map<string, string>();
  function add(name: string, target: string): void {
    targets.set(name, target);
    flatTargets.set(name.replaceAll('.', '_'), target);
  }
  for (const tensor of shapes.keys()) {
    if (tensor.endsWith('scale_shift_table')) {
      // Written as blocks.0.diff_m or blocks.0.modulation.diff_m; the head's as head.…
      const owner = tensor.slice(0, -'.scale_shift_table'.length) || 'head';
      for (const name of [tensor, owner, `${owner}.modulation`]) add(name, tensor);
      continue;
    }
    const module = tensor.replace(/\.(weight|bias)$/, '');
    add(module, module);
    add(originalName(module), module);
  }

  return (key) => {
    let name = key.replace(adapterName, '.$1.$2');
    // Some files have several of them.
    for (let prefix = prefixOf(name); prefix; prefix = prefixOf(name)) {
      name = name.slice(prefix.length);
    }
    const flat = flatPrefix.test(name);
    if (flat) name = name.replace(flatPrefix, '');
    for (const [ending, role] of endings) {
      if (!name.endsWith(ending)) continue;
      const stem = name.slice(0, -ending.length);
      const target = flat ? flatTargets.get(stem.replaceAll('.', '_')) : targets.get(stem);
      if (target === undefined) return null;
      // A modulation table is a tensor, not a module: only a delta fits it, and only it a diff_m.
      const isTable = target.endsWith('scale_shift_table');
      if (isTable) return role === 'diff' || role === 'tableDelta' ? tableKey(target) : null;
      return role === 'tableDelta' ? null : { target, role };
    }
    return null;
  };
}

function tableKey(target: string): LoraKey {
  return { target, role: 'tableDelta' };
}
