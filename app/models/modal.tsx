import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { useWindowEvent } from '../shared/browser';
import { Button } from '../shared/button';
import { t } from '../texts';

/**
 * A dialog that is open for as long as it is there: a title, what it asks or shows, and its buttons. The focus
 * returns to where it was.
 */
export function Modal(props: {
  title: ReactNode;
  /** Whether the title has the focus at first, as where there is much to read; else the first control has it. */
  isLong?: boolean;
  /** At most, in pixels. Default 440. */
  width?: number;
  className?: string;
  /** Stands before the button that closes the dialog. */
  buttons?: ReactNode;
  /** Text of that button; null where the content has buttons of its own. Default *Close*. */
  close?: string | null;
  onClose: () => void;
  children?: ReactNode;
}) {
  const { title, isLong, width, buttons, close = t('shared.close'), onClose } = props;
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    element?.showModal();
    return () => {
      // Closed while it is still on the page: only then the browser gives the focus back.
      element?.close();
      // It does not where what had the focus in the dialog was disabled meanwhile.
      const isLost = document.activeElement === document.body;
      if (isLost && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  // Where the page changes the order of its parts, the dialog is moved with one and is not modal any more.
  useWindowEvent('resize', () =>
    requestAnimationFrame(() => {
      if (!dialog.current?.open || dialog.current.matches(':modal')) return;
      dialog.current.close();
      dialog.current.showModal();
    }),
  );
  return (
    <dialog
      ref={dialog}
      className={props.className}
      style={width ? { width: `min(${width}px, 100vw - 24px)` } : undefined}
      aria-labelledby={id}
      onClose={() => {
        // Said too late, of a dialog that was opened again since.
        if (!dialog.current?.open) onClose();
      }}
    >
      <h2 id={id} tabIndex={isLong ? -1 : undefined}>
        {title}
      </h2>
      {props.children}
      {close !== null && (
        <div className="actions row">
          {buttons}
          <Button onClick={onClose}>{close}</Button>
        </div>
      )}
    </dialog>
  );
}

/** Asks before something is deleted. */
export function Confirmation(props: {
  title: string;
  children: ReactNode;
  /** Text of the button that changes nothing. */
  keep: string;
  /** Text of the other one. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  return (
    <Modal title={props.title} close={null} onClose={props.onClose}>
      <p>{props.children}</p>
      <div className="actions">
        {/* The harmless one first: it has the focus. */}
        <Button onClick={props.onClose}>{props.keep}</Button>
        <Button className="danger" onClick={props.onConfirm}>
          {props.action}
        </Button>
      </div>
    </Modal>
  );
}
