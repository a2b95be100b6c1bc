import { useState } from 'react';
import { Button } from '../shared/button';
import { Problem } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/models';
import type { GpuMemory } from './use-gpu-memory';

/** Asks the GPU how much memory it gives, and says beside the button why it could not; nothing once it is known. */
export function MeasureButton({ gpu, onMeasure }: { gpu: GpuMemory; onMeasure: () => void }) {
  // Another button of the page may have asked.
  const [asked, setAsked] = useState(false);
  if (gpu.status === 'measured') return null;
  const error = asked && gpu.status === 'failed' ? gpu.error : null;
  return (
    <>
      <Button
        className="inline"
        disabled={gpu.status === 'measuring'}
        onClick={() => {
          setAsked(true);
          onMeasure();
        }}
      >
        {t(gpu.status === 'measuring' ? 'models.measuring' : 'models.measure')}
      </Button>
      {error?.code === 'BUSY' && (
        <p className="info" role="status">
          {t('models.measureBusy')}
        </p>
      )}
      {error && error.code !== 'BUSY' && <Problem error={error} />}
    </>
  );
}
