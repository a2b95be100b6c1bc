import { addTexts } from '../english';
import files from './files.json';

addTexts({ files });
