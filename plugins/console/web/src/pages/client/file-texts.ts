/** The English texts of files and batches come with the pages that show them; the other languages have them from the start. */
import i18next from 'i18next';
import files from '../../texts/en/files.ts';

i18next.addResourceBundle('en', 'translation', { client: files }, true);
