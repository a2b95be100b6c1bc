import { lazy, Suspense, useState } from 'react';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { chosenOptions } from './sampling';

/** Few people need it, so it is no part of the page's first script. */
const CodeDialog = lazy(async () => ({ default: (await import('./code-dialog')).CodeDialog }));

/** The button that shows the form as code, with its dialog. */
export function CodeButton() {
  const { form, values, model, models } = useFields();
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="quiet" onClick={() => setOpen(true)}>
        {t('form.copyAsCode')}
      </button>
      {open && (
        <Suspense>
          <CodeDialog
            options={chosenOptions(model, values)}
            form={{ ...form, values: { ...values, model: model?.manifest.id ?? '' } }}
            library={models.status === 'ready' ? models.loras : []}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      )}
    </>
  );
}
