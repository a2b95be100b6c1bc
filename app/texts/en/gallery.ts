import { addTexts } from '../english';
import gallery from './gallery.json';

addTexts({ gallery });
