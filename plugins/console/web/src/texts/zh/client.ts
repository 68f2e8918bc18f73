/** Chinese texts of the client's pages. */
import type { Part } from '../en.ts';

const texts: Part<'client'> = {
  home: { title: '首页' },
};
export default texts;
