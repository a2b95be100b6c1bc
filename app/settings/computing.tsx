import { budgetError, changeDevice, useDevice } from '../shared/device';
import { BackendField, MemoryField } from '../shared/fields';
import { type GpuState, shownBackend } from '../shared/gpu';
import { t } from '../texts';
import '../texts/en/settings';

/** What computes the videos of this browser; the studio has the same fields. */
export function Computing({ gpu }: { gpu: GpuState }) {
  const device = useDevice();
  const { memoryBudget } = device;
  return (
    <section className="panel" aria-labelledby="computing-title">
      <h2 id="computing-title">{t('settings.computing')}</h2>
      <p className="field-hint">{t('settings.computingHint')}</p>
      <BackendField
        backend={shownBackend(device, gpu)}
        onChange={(name) => changeDevice({ backend: name })}
      />
      <MemoryField
        value={memoryBudget}
        error={budgetError(memoryBudget)}
        onChange={(value) => changeDevice({ memoryBudget: value })}
      />
    </section>
  );
}
