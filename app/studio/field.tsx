import type { ReactNode } from 'react';

/** What an input needs to be tied to its hint and its error. */
export function describedBy(id: string, error: string | undefined, hint?: boolean) {
  const ids = [...(error ? [`${id}-error`] : []), ...(hint ? [`${id}-hint`] : [])];
  return {
    'aria-invalid': error ? (true as const) : undefined,
    'aria-describedby': ids.length > 0 ? ids.join(' ') : undefined,
  };
}

/** The sentence below a field: its error, else its hint. */
export function FieldNotes(props: { id: string; error?: string | undefined; hint?: ReactNode }) {
  return (
    <>
      {props.error && (
        <p className="field-error" id={`${props.id}-error`}>
          {props.error}
        </p>
      )}
      {props.hint && (
        <p className="field-hint" id={`${props.id}-hint`}>
          {props.hint}
        </p>
      )}
    </>
  );
}
