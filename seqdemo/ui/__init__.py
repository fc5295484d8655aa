"""The app: pages and components. The server decodes and sends one compact payload a column to the page, which draws it.

assets     scripts and styles, joined
theme      colours and type for Gradio's own parts
fields     the options of a column as controls, and their limits
service    models, runs and replays behind the pages, and who computes when; loads torch on first use
answers    a question from a page or a program: checked, asked of the service, answered by a payload
hands      questions of hands on the model
catalogue  what a page starts with: models, examples, frozen worked result
early      draws a page before Gradio's scripts are loaded
component  the gr.HTML component that every page is made of
pages      the five pages
api        the endpoints for programs; api_hands: those of hands
freeze     writes the frozen worked results
launch     builds and starts the app
"""
