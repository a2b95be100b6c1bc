import { useState } from 'react';
import { Button } from '../../shared/button';
import { describedBy, FieldNotes } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { toNumber } from './form-state';
import { unusedNote } from './sampling';
import { gridOf, maxGrid, seedVariations, type VariedName, variedNames } from './variations';

const seedCount = 4;

/** Adds several videos to the queue that differ in the seed, or in steps, guidance and shift. */
export function VariationsField() {
  const { values, resolved, ready, improve, onVariations: onAdd } = useFields();
  const disabled = !ready || improve.state.status === 'running';
  const [lists, setLists] = useState<Readonly<Record<VariedName, string>>>({
    num_inference_steps: '',
    guidance_scale: '',
    flow_shift: '',
  });
  const seed = toNumber(values.seed);
  const { changes, count, errors } = gridOf(lists, seed);
  const tooMany = count > maxGrid;
  const addGrid = () => changes.length > 0 && !disabled && onAdd(changes);
  return (
    <>
      <div className="field">
        <Button
          disabled={disabled}
          aria-describedby="seeds-hint"
          onClick={() => onAdd(seedVariations(seed, seedCount))}
        >
          {t('form.seeds', { count: seedCount })}
        </Button>
        <FieldNotes id="seeds" hint={t('form.seedsHint')} />
      </div>
      <fieldset className="field">
        <legend>{t('form.grid')}</legend>
        <div className="thirds stack mb-8">
          {variedNames.map((name) => (
            <div key={name} className="field">
              <label htmlFor={`vary-${name}`}>{t(`form.vary.${name}`)}</label>
              <input
                id={`vary-${name}`}
                type="text"
                inputMode="decimal"
                autoComplete="off"
                placeholder={`${values[name]}, …`}
                // What the profile fixes cannot be varied.
                disabled={typeof unusedNote(name, resolved)?.shown === 'string'}
                value={lists[name]}
                {...describedBy(`vary-${name}`, errors[name])}
                onChange={(event) => setLists({ ...lists, [name]: event.target.value })}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter' || event.ctrlKey || event.metaKey) return;
                  // It adds the grid, and does not submit the form.
                  event.preventDefault();
                  addGrid();
                }}
              />
              <FieldNotes id={`vary-${name}`} error={errors[name]} />
            </div>
          ))}
        </div>
        <FieldNotes
          id="grid"
          error={tooMany ? t('form.gridTooLarge', { max: maxGrid, count }) : undefined}
          hint={t('form.gridHint')}
        />
        <Button disabled={disabled || changes.length === 0} onClick={addGrid}>
          {t('form.addToQueue', { count })}
        </Button>
      </fieldset>
    </>
  );
}
