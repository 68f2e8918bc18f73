/** English texts of the operator's pages. */
export default {
  title: 'Operator',
};
