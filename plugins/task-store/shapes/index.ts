/** Every client protocol of images and videos. */
export { imageAnswer } from './image-answer.ts';
export { imageEdit } from './image-edit.ts';
export { completedFrame, errorFrame } from './image-stream.ts';
export { imageTask } from './image-task.ts';
export { openaiVideos } from './openai-videos.ts';
export { listedVideos, videoTask } from './video-task.ts';
