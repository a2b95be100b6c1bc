import { installHeadlessApi } from './api';

/**
 * Fills the bare page that commands drive: file inputs and `window.kinora`. The same runner, engine and library as in
 * the studio, without anything to look at. It is ready when `main` says so.
 */
export function mountHeadless(main: HTMLElement): void {
  const inputs = ['image', 'last-image', 'loras', 'files'].map((id) => {
    const input = document.createElement('input');
    input.type = 'file';
    input.id = id;
    input.multiple = !id.endsWith('image');
    return input;
  });
  main.replaceChildren(...inputs);
  window.kinora = installHeadlessApi();
  main.dataset.ready = 'true';
}
