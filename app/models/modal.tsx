import { type ReactNode, useLayoutEffect, useRef } from 'react';

/** A dialog that is open for as long as it is there; the focus returns to where it was. */
export function Modal(props: {
  titleId: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // Closed while it is still on the page: only then the browser gives the focus back.
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={props.className}
      aria-labelledby={props.titleId}
      onClose={() => {
        // Said too late, of a dialog that was opened again since.
        if (!dialog.current?.open) props.onClose();
      }}
    >
      {props.children}
    </dialog>
  );
}
