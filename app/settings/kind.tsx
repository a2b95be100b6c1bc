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
    <li className="item stack gap-8">
      <div className="split baseline">
        <h3>{name}</h3>
        <span className="measure numbers">{bytes === null ? '…' : formatBytes(bytes)}</span>
      </div>
      <p className="field-hint">{hint}</p>
      {children && <div className="actions">{children}</div>}
    </li>
  );
}
