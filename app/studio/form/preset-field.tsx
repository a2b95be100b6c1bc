import { type KeyboardEvent, useState } from 'react';
import { toKinoraError } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { CloseIcon } from '../../shared/icons';
import { Problem } from '../../shared/messages';
import { useTask } from '../../shared/task';
import { t } from '../../texts';
import '../../texts/en/form';
import { type Data, loadData, useStored } from '../use-data';
import { useFields } from './form-context';
import {
  changePresets,
  maxPresetName,
  type Preset,
  type PresetAction,
  presetValues,
  storedPresets,
} from './presets';
import { hasValues } from './quality';

/** The presets of one's own: choosing, and the list that saves, renames and deletes them. */
export function PresetField() {
  const { values, set } = useFields();
  const { presets, change } = usePresets();
  const [editing, setEditing] = useState(false);
  const task = useTask();
  const apply = (action: PresetAction) => task.run(() => change(action));
  return (
    <fieldset className="field presets">
      <legend>{t('form.yourPresets')}</legend>
      <div className="words">
        {presets.map((preset) => (
          <Button
            key={preset.id}
            className="word"
            aria-pressed={hasValues(values, preset.values)}
            onClick={() => set(preset.values)}
          >
            {preset.name}
          </Button>
        ))}
        <Button
          className="word"
          aria-expanded={editing}
          aria-controls="own-presets"
          onClick={() => setEditing(!editing)}
        >
          {t('form.editPresets')}
        </Button>
      </div>
      <section id="own-presets" aria-label={t('form.yourPresets')} hidden={!editing}>
        {editing && (
          <OwnPresets
            presets={presets}
            onAction={apply}
            onSave={(name) =>
              apply({ type: 'saved', id: crypto.randomUUID(), name, values: presetValues(values) })
            }
          />
        )}
        {task.problem && <Problem error={task.problem} />}
      </section>
    </fieldset>
  );
}

function OwnPresets(props: {
  presets: readonly Preset[];
  onAction: (action: PresetAction) => void;
  onSave: (name: string) => void;
}) {
  const { presets, onAction, onSave } = props;
  const [name, setName] = useState('');
  const save = () => {
    if (name.trim() === '') return;
    onSave(name);
    setName('');
  };
  return (
    <>
      <p className="field-hint">{t('form.presetHint')}</p>
      <div className="input-row mt-8">
        <input
          type="text"
          aria-label={t('form.newPresetName')}
          placeholder={t('form.name')}
          maxLength={maxPresetName}
          value={name}
          onChange={(event) => setName(event.target.value)}
          onKeyDown={(event) => onEnter(event, save)}
        />
        <Button disabled={name.trim() === ''} onClick={save}>
          {t('form.save')}
        </Button>
      </div>
      <ul>
        {presets.map((preset) => (
          <li key={preset.id} className="input-row mt-8">
            <input
              // A name that was not taken is shown as it is stored.
              key={`${preset.id} ${preset.name}`}
              type="text"
              aria-label={t('form.nameOf', { name: preset.name })}
              maxLength={maxPresetName}
              defaultValue={preset.name}
              onKeyDown={(event) => onEnter(event, () => event.currentTarget.blur())}
              onBlur={(event) => {
                const field = event.currentTarget;
                onAction({ type: 'renamed', id: preset.id, name: field.value });
                field.value = preset.name;
              }}
            />
            <Button
              className="icon"
              aria-label={t('form.deleteName', { name: preset.name })}
              onClick={() => onAction({ type: 'deleted', id: preset.id })}
            >
              <CloseIcon />
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Enter belongs to the field, and does not submit the form around it. */
function onEnter(event: KeyboardEvent, work: () => void): void {
  if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  work();
}

const setting = 'presets';
const none: readonly Preset[] = [];

async function readPresets({ getRunner, loadSetting }: Data): Promise<readonly Preset[]> {
  return storedPresets(await loadSetting(getRunner().store.database, setting));
}

/** The page says itself that the database cannot be read. */
const presetsOrNone = (data: Data) => readPresets(data).catch(() => none);

/** The presets of this browser, and what changes them; other tabs see the change. */
function usePresets(): {
  presets: readonly Preset[];
  /** @throws KinoraError `STORAGE_FULL` */
  change: (action: PresetAction) => Promise<void>;
} {
  const presets = useStored(presetsOrNone) ?? none;
  async function change(action: PresetAction): Promise<void> {
    try {
      const { getRunner, loadSetting, saveSetting } = await loadData();
      const { database } = getRunner().store;
      await database.transaction('rw', database.settings, async () => {
        const before = storedPresets(await loadSetting(database, setting));
        await saveSetting(database, setting, changePresets(before, action));
      });
    } catch (thrown) {
      throw toKinoraError(thrown);
    }
  }
  return { presets, change };
}
