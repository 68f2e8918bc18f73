/** Chinese texts of the operator's pages. */
import type { Part } from '../en.ts';

const texts: Part<'operator'> = {
  title: '运营',
};
export default texts;
