/** English texts of projects. */
export default {
  projects: {
    title: 'Projects',
    hint: 'Keys are put into projects. What their calls cost is summed up by project, whatever becomes of the keys.',
    none: 'No projects',
    noneHint: 'Make one here, or name one in a key.',
    create: 'New project',
    made: 'The project is made.',
    edit: 'Change project',
    editNamed: 'Edit {{name}}',
    saved: 'The project is changed.',
    nameHint: 'Its keys get the name too.',
    models: 'Models that its keys may call',
    allModels: 'All that each key may',
    spent: 'Cost in 30 days',
    inUse: 'In use',
    archived: 'Archived',
    archive: 'Archive',
    archiveTitle: 'Archive {{name}}?',
    archiveWords:
      'Its keys are refused at once, and none can be put into it. What was spent stays in all sums. It can be restored.',
    archiveDone: 'The project is archived.',
    restore: 'Restore',
    restored: 'The keys of the project are let in again.',
  },
};
