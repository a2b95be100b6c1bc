import type { ComponentProps } from 'react';

/** A button that does something on the page; one without it submits the form around it. */
export function Button(props: ComponentProps<'button'>) {
  return <button type="button" {...props} />;
}
