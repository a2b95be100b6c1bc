import { lazy, Suspense, useState } from 'react';
import type { LoraEntry, RunOptions } from '../../../lib/contract';
import { t } from '../../texts';
import '../../texts/en/form';
import type { FormState } from './form-state';

/** Few people need it, so it is no part of the page's first script. */
const CodeDialog = lazy(async () => ({ default: (await import('./code-dialog')).CodeDialog }));

/** The button that shows the form as code, with its dialog. */
export function CodeButton(props: {
  form: FormState;
  /** Of its request. */
  options: RunOptions;
  library: readonly LoraEntry[];
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="quiet" onClick={() => setOpen(true)}>
        {t('form.copyAsCode')}
      </button>
      {open && (
        <Suspense>
          <CodeDialog {...props} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
