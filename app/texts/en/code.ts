import { addTexts } from '../english';
import code from './code.json';

addTexts({ code });
