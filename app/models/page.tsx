export { ModelsPage as default } from './models-page';
