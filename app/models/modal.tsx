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
    const opener = document.activeElement;
    element?.showModal();
    // Where the page changes the order of its parts, the dialog is moved with one and is not modal any more.
    const onResize = () =>
      requestAnimationFrame(() => {
        if (!element?.open || element.matches(':modal')) return;
        element.close();
        element.showModal();
      });
    window.addEventListener('resize', onResize);
    return () => {
      window.removeEventListener('resize', onResize);
      // Closed while it is still on the page: only then the browser gives the focus back.
      element?.close();
      // It does not where what had the focus in the dialog was disabled meanwhile.
      const isLost = document.activeElement === document.body;
      if (isLost && opener instanceof HTMLElement) opener.focus();
    };
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
