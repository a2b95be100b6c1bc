import { useEffect, useState } from 'react';
import type { FormState } from './form-state';
import type { FieldErrors, shownErrors } from './validation';

const nothing: FieldErrors = {};

/** The errors to show; none until the schemas that check a request are loaded, which are large. */
export function useShownErrors(form: FormState): FieldErrors {
  const [validation, setValidation] = useState<{ shownErrors: typeof shownErrors } | null>(null);
  useEffect(() => {
    import('./validation').then(setValidation, () => undefined);
  }, []);
  return validation?.shownErrors(form) ?? nothing;
}
