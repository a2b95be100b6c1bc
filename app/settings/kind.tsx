import type { ReactNode } from 'react';
import { formatBytes } from '../../lib/contract';

/** One kind of what is stored, and what can be done about it. */
export function Kind(props: {
  name: string;
  /** Null while it is not known. */
  bytes: number | null;
  hint: string;
  children?: ReactNode;
}) {
  const { name, bytes, hint, children } = props;
  return (
    <li className="kind">
      <div className="kind-head">
        <h3>{name}</h3>
        <span className="measure">{bytes === null ? '…' : formatBytes(bytes)}</span>
      </div>
      <p className="field-hint">{hint}</p>
      {children && <div className="actions">{children}</div>}
    </li>
  );
}
