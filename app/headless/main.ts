import { mountHeadless } from './mount';

const main = document.querySelector('main');
if (main) mountHeadless(main);
