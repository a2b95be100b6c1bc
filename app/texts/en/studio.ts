import { addTexts } from '../english';
import studio from './studio.json';

addTexts({ studio });
