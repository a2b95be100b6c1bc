import { toKinoraError } from '../../../contract';

/** The failure in the form for the driver. */
export function failureText(thrown: unknown): string {
  const error = toKinoraError(thrown);
  return `${error.code}: ${error.message} ${error.remedy}`;
}

/** Tells the driver that the page can be used. */
export function tellReady(): void {
  const main = document.querySelector('main');
  if (main) main.dataset.ready = 'true';
}
