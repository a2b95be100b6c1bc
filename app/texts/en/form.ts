import { addTexts } from '../english';
import form from './form.json';

addTexts({ form });
